// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.24;

/// @title A token that keeps a hundredth of every transfer
/// @dev Such tokens differ in their logs: see Manner.
contract FeeToken {
    /// @notice The logs of a transfer.
    enum Manner {
        Burning, // the whole value to the receiver, then the fee from the receiver to the zero address
        Splitting, // the received amount to the receiver, and the fee from the payer to the collector
        Silent // the whole value to the receiver, and no log of the fee
    }

    string public constant name = "Fee";
    string public constant symbol = "FEE";
    uint8 public constant decimals = 6;
    address public constant collector = address(0xFEE);

    Manner public manner;
    mapping(address holder => uint256) public balanceOf;
    mapping(address holder => mapping(address spender => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    /// @param holder Holds all tokens initially.
    constructor(address holder) {
        balanceOf[holder] = 1e12;
        emit Transfer(address(0), holder, 1e12);
    }

    /// @notice Sets how future transfers are logged.
    function behave(Manner manner_) external {
        manner = manner_;
    }

    function approve(address spender, uint256 value) external returns (bool) {
        allowance[msg.sender][spender] = value;
        emit Approval(msg.sender, spender, value);
        return true;
    }

    function transfer(address to, uint256 value) external returns (bool) {
        _move(msg.sender, to, value);
        return true;
    }

    function transferFrom(address from, address to, uint256 value) external returns (bool) {
        allowance[from][msg.sender] -= value;
        _move(from, to, value);
        return true;
    }

    function _move(address from, address to, uint256 value) private {
        uint256 fee = value / 100;
        balanceOf[from] -= value;
        balanceOf[to] += value - fee;
        if (manner == Manner.Splitting) {
            balanceOf[collector] += fee;
            emit Transfer(from, to, value - fee);
            emit Transfer(from, collector, fee);
            return;
        }
        emit Transfer(from, to, value);
        if (manner == Manner.Burning) emit Transfer(to, address(0), fee);
    }
}
